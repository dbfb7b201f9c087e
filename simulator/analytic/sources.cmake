list(APPEND simulator_sources
  analytic/bus_load.cpp analytic/kind_costs.cpp analytic/outline.cpp analytic/shared_costs.cpp
  analytic/sketch.cpp analytic/sketch_memory.cpp analytic/stage_places.cpp analytic/walk.cpp)
