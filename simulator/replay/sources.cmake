list(APPEND simulator_sources
  replay/body_template.cpp replay/disturbance.cpp replay/flows.cpp replay/fold.cpp replay/links.cpp
  replay/replay_engine.cpp replay/replay.cpp replay/routes.cpp replay/instruction_writer.cpp replay/stuck.cpp
  replay/traffic.cpp replay/topology_builder.cpp replay/topology_cache.cpp)
