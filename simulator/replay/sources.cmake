list(APPEND simulator_sources replay/body_template.cpp replay/fold.cpp replay/links.cpp replay/replay.cpp replay/script_writer.cpp replay/stuck.cpp replay/traffic.cpp
  replay/world_builder.cpp replay/worlds.cpp)
