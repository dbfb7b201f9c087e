list(APPEND simulator_sources
  collectives/collective_cost.cpp collectives/network.cpp collectives/node_curve.cpp
  collectives/places.cpp collectives/site_links.cpp collectives/network_bytes.cpp
  collectives/expert_exchange.cpp)
