# Checkpoints: safetensors shards, saved under any plan and loaded under any other.
list(APPEND runtime_sources
  ${CMAKE_CURRENT_LIST_DIR}/adapters.cpp
  ${CMAKE_CURRENT_LIST_DIR}/agree.cpp
  ${CMAKE_CURRENT_LIST_DIR}/box.cpp
  ${CMAKE_CURRENT_LIST_DIR}/checkpoint.cpp
  ${CMAKE_CURRENT_LIST_DIR}/description.cpp
  ${CMAKE_CURRENT_LIST_DIR}/directory.cpp
  ${CMAKE_CURRENT_LIST_DIR}/families.cpp
  ${CMAKE_CURRENT_LIST_DIR}/hugging_face.cpp
  ${CMAKE_CURRENT_LIST_DIR}/hugging_face_config.cpp
  ${CMAKE_CURRENT_LIST_DIR}/hugging_face_grok.cpp
  ${CMAKE_CURRENT_LIST_DIR}/hugging_face_mixtures.cpp
  ${CMAKE_CURRENT_LIST_DIR}/hugging_face_modules.cpp
  ${CMAKE_CURRENT_LIST_DIR}/checkpointer.cpp
  ${CMAKE_CURRENT_LIST_DIR}/lock.cpp
  ${CMAKE_CURRENT_LIST_DIR}/pieces.cpp
  ${CMAKE_CURRENT_LIST_DIR}/safetensors_file.cpp
  ${CMAKE_CURRENT_LIST_DIR}/safetensors_header.cpp
  ${CMAKE_CURRENT_LIST_DIR}/stored.cpp
  ${CMAKE_CURRENT_LIST_DIR}/weight_files.cpp
  ${CMAKE_CURRENT_LIST_DIR}/weight_values.cpp
  ${CMAKE_CURRENT_LIST_DIR}/whole.cpp)
