list(APPEND simulator_sources
  analytic/bus_load.cpp analytic/kind_costs.cpp analytic/pass_layer.cpp analytic/schedule_costs.cpp analytic/shared_costs.cpp
  analytic/cost_estimator.cpp analytic/cost_estimator_memory.cpp analytic/cost_estimator_recompute.cpp analytic/cost_estimator_state.cpp analytic/stage_places.cpp analytic/recurrence.cpp
  analytic/turns.cpp)
