# The harnesses: in fuzz_tests, which replays what is kept here, and with libFuzzer in `fuzz` (preset fuzz). Included by
# tests.cmake.
file(GLOB harnesses CONFIGURE_DEPENDS tests/fuzz/*.cc)
list(FILTER harnesses EXCLUDE REGEX "/(libfuzzer|replay_test)\\.cc$")
list(APPEND harnesses ${PROJECT_SOURCE_DIR}/apps/embed/c/skein_c.cc)
target_sources(fuzz_tests PRIVATE ${harnesses})
compile_together(fuzz_tests)
if(SKEIN_SANITIZE STREQUAL "fuzzer")
  add_executable(fuzz EXCLUDE_FROM_ALL ${harnesses} tests/fuzz/libfuzzer.cc)
  target_link_libraries(fuzz PRIVATE skein_apps)
  target_link_options(fuzz PRIVATE -fsanitize=fuzzer)
  # Comparing numbers of vectors leads to no other code, and telling libFuzzer of it takes most of their time.
  set_property(SOURCE engine/vectors/codec.cu engine/vectors/vec.cu APPEND PROPERTY
      COMPILE_OPTIONS -fno-sanitize-coverage=trace-cmp)
elseif(NOT SKEIN_SANITIZE)
  add_test(NAME fuzz COMMAND ${PROJECT_SOURCE_DIR}/tests/fuzz/run --seconds 15)
  set_tests_properties(fuzz PROPERTIES LABELS slow TIMEOUT 7200 SKIP_RETURN_CODE 77 RUN_SERIAL TRUE)
endif()
