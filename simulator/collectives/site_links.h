// Groups that reach over sites: which links they cross, and what each has of them.
#pragma once

#include <utility>
#include <vector>

#include "hardware_profiles/hardware.h"
#include "simulator/collectives/collective_cost.h"

namespace trivium::simulator {

/// Members of a group by site, in the order in which a ring visits the sites: that of their first members.
using SitesOfGroup = std::vector<std::pair<int, int>>;

SitesOfGroup sites_of(const hardware::Cluster& cluster, const std::vector<int>& members);

/// What a link carries each way.
base::BytesPerSecond rate_of(const hardware::SiteLink& link);

/// Fills in what the links between sites leave to groups that are active at once, those of a stage: all that cross a
/// link share it alike. `placements` are those of `groups`, in their order.
void share_site_links(const hardware::Cluster& cluster, const std::vector<SitesOfGroup>& groups,
                      std::vector<GroupPlacement>& placements);

}  // namespace trivium::simulator
