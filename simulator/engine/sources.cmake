list(APPEND simulator_sources engine/costed_program.cpp engine/engine.cpp engine/flow.cpp engine/flows.cpp engine/player.cpp)
