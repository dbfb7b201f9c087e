list(APPEND simulator_sources
  schedule/engine.cpp schedule/step_body.cpp schedule/task_graph.cpp)
