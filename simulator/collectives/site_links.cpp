#include "simulator/collectives/site_links.h"

#include <algorithm>
#include <map>

namespace trivium::simulator {
namespace {

using hardware::SiteLink;

/// Calls `visit` with every pair of sites of a group that a link joins, and that link.
template <class Visit>
void for_each_link(const hardware::Cluster& cluster, const SitesOfGroup& sites, const Visit& visit) {
  for (std::size_t x = 0; x < sites.size(); ++x) {
    for (std::size_t y = x + 1; y < sites.size(); ++y) {
      const SiteLink* link = cluster.link_between(sites[x].first, sites[y].first);
      if (link != nullptr) visit(sites[x], sites[y], *link);
    }
  }
}

}  // namespace

SitesOfGroup sites_of(const hardware::Cluster& cluster, const std::vector<int>& members) {
  SitesOfGroup sites;
  for (const int member : members) {
    const int site = cluster.site_of_device(member);
    const auto known = std::ranges::find(sites, site, &std::pair<int, int>::first);
    if (known == sites.end()) {
      sites.emplace_back(site, 1);
    } else {
      ++known->second;
    }
  }
  return sites;
}

base::BytesPerSecond rate_of(const SiteLink& link) { return link.link.bandwidth * link.link.efficiency; }

// Of n ranks, n_x at site x, every rank sends 1/n of its buffer to each other: n_x n_y / n buffers go from x to y.
void share_site_links(const hardware::Cluster& cluster, const std::vector<SitesOfGroup>& groups,
                      std::vector<GroupPlacement>& placements) {
  std::map<const SiteLink*, int> crossing;  // groups
  for (const SitesOfGroup& sites : groups) {
    for_each_link(cluster, sites, [&](const auto&, const auto&, const SiteLink& link) { ++crossing[&link]; });
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    const SitesOfGroup& sites = groups[g];
    GroupPlacement& placement = placements[g];
    const auto share = [&](const SiteLink& link) { return rate_of(link) / crossing.at(&link); };
    for_each_link(cluster, sites, [&](const auto& from, const auto& to, const SiteLink& link) {
      const double buffers = static_cast<double>(from.second) * to.second / placement.ranks;
      placement.exchange = std::min(placement.exchange, share(link) / buffers);
      placement.between.latency = std::max(placement.between.latency, link.link.latency);
    });
    if (sites.size() < 2) continue;
    base::Seconds shortest = placement.between.latency;
    for (std::size_t at = 0; at < sites.size(); ++at) {
      const SiteLink* link = cluster.link_between(sites[at].first, sites[(at + 1) % sites.size()].first);
      const base::Seconds latency = link == nullptr ? base::Seconds(0) : link->link.latency;
      if (link != nullptr) placement.between.bandwidth = std::min(placement.between.bandwidth, share(*link));
      placement.around += latency;
      shortest = std::min(shortest, latency);
    }
    // Of n steps around the ring a message takes n - 1: where every step is from site to site, it is spared one.
    if (std::cmp_equal(sites.size(), placement.ranks)) placement.around = placement.around - shortest;
  }
}

}  // namespace trivium::simulator
