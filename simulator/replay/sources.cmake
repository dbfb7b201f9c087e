list(APPEND simulator_sources
  replay/body_template.cpp replay/disturbance.cpp replay/flows.cpp replay/fold.cpp replay/links.cpp
  replay/player.cpp replay/replay.cpp replay/routes.cpp replay/script_writer.cpp replay/stuck.cpp
  replay/traffic.cpp replay/world_builder.cpp replay/worlds.cpp)
