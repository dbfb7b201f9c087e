# Tokenizers. PCRE2 knows Unicode's classes of characters.
find_path(PCRE2_INCLUDE_DIR pcre2.h REQUIRED)
find_library(PCRE2_LIBRARY pcre2-8 REQUIRED)
mark_as_advanced(PCRE2_INCLUDE_DIR PCRE2_LIBRARY)
list(APPEND runtime_sources
  ${CMAKE_CURRENT_LIST_DIR}/bpe.cpp
  ${CMAKE_CURRENT_LIST_DIR}/bytes.cpp
  ${CMAKE_CURRENT_LIST_DIR}/words.cpp)
list(APPEND runtime_depends ${PCRE2_LIBRARY})
