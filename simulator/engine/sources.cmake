list(APPEND simulator_sources engine/costed_program.cpp engine/engine.cpp engine/flows.cpp engine/player.cpp engine/routes.cpp
  engine/step_body.cpp engine/task_graph.cpp)
