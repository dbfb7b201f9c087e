list(APPEND simulator_sources analytic/kind_bytes.cpp analytic/kind_costs.cpp analytic/outline.cpp analytic/sketch.cpp analytic/sketch_memory.cpp)
