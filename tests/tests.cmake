# The tests: one program a folder, and one entry of ctest for each source file in it. Included by CMakeLists.txt.

# Settings that all entries share. Teams wait asleep, and one test runs at a time: tests start several processes and
# threads on few cores.
set(test_environment OMP_WAIT_POLICY=passive)

# test_options(TARGET OPTIMIZATION): the compile options of tests. The library they test is optimised in any case.
function(test_options target optimization)
  target_link_libraries(${target} PRIVATE skein_apps JPEG::JPEG PNG::PNG ZLIB::ZLIB GTest::gtest)
  target_compile_definitions(${target} PRIVATE SKEIN_SOURCE_DIR="${PROJECT_SOURCE_DIR}"
                                               SKEIN_BINARY_DIR="${PROJECT_BINARY_DIR}")
  if(CMAKE_BUILD_TYPE STREQUAL "Release")
    target_compile_options(${target} PRIVATE ${optimization})
  endif()
endfunction()

# test_main(TARGET OPTIMIZATION HEADERS...): main() for some of the folders, which share its options and its
# precompiled header.
function(test_main target optimization)
  add_library(${target} OBJECT tests/support/main.cc)
  test_options(${target} ${optimization})
  target_precompile_headers(${target} PRIVATE ${PRECOMPILED} <gtest/gtest.h> ${ARGN})
endfunction()

# Without optimisation a test compiles in three quarters of the time, and without JSON half a second sooner.
test_main(main_of_calculating -O1)
test_main(main_of_programs -O0 <nlohmann/json.hpp>)
test_main(main_of_others -O0)

# The tests that the emulated device runs as well, from the same objects. A GPU's machine runs these and two more.
set(on_devices caching_allocator clip codec conv_run cuda_chain cuda_comm cuda_conv_bn cuda_gemm cuda_graph cuda_kernels
    cuda_memory cuda_norm cuda_training device_messages device_use dropout dtype fold gem graph graph_step layout
    loss_scale maximum memory_pool mix mixing narrow ops pointwise random recorded reduce sample slot softmax vec)
list(JOIN on_devices "|" on_devices_regex)

set(test_folders engine nn comm optim data apps laws programs fuzz)
if(SKEIN_CUDA)
  list(APPEND test_folders cuda)
endif()
foreach(folder ${test_folders})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS tests/${folder}/*_test.cc)
  if(NOT NCCL_INCLUDE_DIR)
    list(FILTER sources EXCLUDE REGEX "/nccl_test\\.cc$")
  endif()
  if(folder MATCHES "^(engine|nn|laws|cuda)$")  # many of these calculate what they expect
    set(main main_of_calculating)
    set(optimization -O1)
  elseif(folder MATCHES "^(apps|programs)$")
    set(main main_of_programs)
    set(optimization -O0)
  else()
    set(main main_of_others)
    set(optimization -O0)
  endif()
  set(program ${folder}_tests)
  add_executable(${program} ${sources} $<TARGET_OBJECTS:${main}>)
  test_options(${program} ${optimization})
  target_precompile_headers(${program} REUSE_FROM ${main})
  compile_together(${program} EXCEPT "/(library|nccl|succession)_test\\.cc$" APART "/(${on_devices_regex})_test\\.cc$")
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    set(entry ${name})
    if(TEST ${entry})  # of another folder
      set(entry ${folder}.${name})
    endif()
    if(name STREQUAL elastic_sim_test)
      continue()  # see below
    endif()
    add_test(NAME ${entry} COMMAND ${program} --file=${name})
    if(name MATCHES "_sweep_test$")
      set(label slow)
      set(seconds 1200)
    else()
      set(label fast)
      set(seconds 900)
    endif()
    set_tests_properties(${entry} PROPERTIES LABELS ${label} TIMEOUT ${seconds} RUN_SERIAL TRUE
                         ENVIRONMENT ${test_environment})
  endforeach()
endforeach()

# The tests of what is computed in vectors, once for each kind of instruction sets that SKEIN_CPU can force. An entry
# that this processor cannot run is skipped, and its output says why.
foreach(isa avx2 avx512 avx512bf16 amx)
  foreach(file conv2d_test conv2d_op_test gemm_test conv_bn_test conv_bn_chain_test batch_norm_test pool2d_test
               kernels_test resize_test torch_parity_test)
    set(program engine_tests)
    if(file STREQUAL "resize_test")
      set(program data_tests)
    elseif(file STREQUAL "torch_parity_test")
      set(program nn_tests)
    endif()
    add_test(NAME ${file}.${isa} COMMAND ${program} --file=${file})
    set_tests_properties(${file}.${isa} PROPERTIES LABELS fast TIMEOUT 900 RUN_SERIAL TRUE
                         ENVIRONMENT "${test_environment};SKEIN_CPU=${isa}" SKIP_RETURN_CODE 77)
  endforeach()
endforeach()

# Trainings in simulated worlds, of one thread each, which neither wait for real time nor mind who runs beside them.
set(shards 4)
foreach(shard RANGE 1 ${shards})
  math(EXPR index "${shard} - 1")
  add_test(NAME elastic_sim_test.${shard} COMMAND apps_tests --file=elastic_sim_test)
  set_tests_properties(elastic_sim_test.${shard} PROPERTIES LABELS fast TIMEOUT 900
    ENVIRONMENT "${test_environment};GTEST_TOTAL_SHARDS=${shards};GTEST_SHARD_INDEX=${index}")
endforeach()

# Many worlds, which only optimised code lives through in time, and no sanitizer.
set_source_files_properties(tests/comm/membership/succession_test.cc PROPERTIES COMPILE_OPTIONS -O2
                            SKIP_PRECOMPILE_HEADERS ON)
if(SKEIN_SANITIZE)
  set_property(TEST succession_test APPEND PROPERTY ENVIRONMENT SKEIN_WORLDS=5000)
endif()

include(tests/fuzz/fuzz.cmake)

if(TARGET _skein)
  add_executable(recorded_gradients tests/python/recorded_gradients.cc)
  target_link_libraries(recorded_gradients PRIVATE skein_apps)
  add_test(NAME python COMMAND ${Python_EXECUTABLE} -m unittest -v test_skein test_optimizers test_elastic test_jax
                                test_simulate test_rows
           WORKING_DIRECTORY ${PROJECT_SOURCE_DIR}/tests/python)
  set_tests_properties(python PROPERTIES LABELS fast TIMEOUT 900 RUN_SERIAL TRUE ENVIRONMENT
    "${test_environment};PYTHONDONTWRITEBYTECODE=1;PYTHONPATH=${PROJECT_BINARY_DIR}/python;\
SKEIN_RECORDED_GRADIENTS=$<TARGET_FILE:recorded_gradients>")
endif()

# The tests that need a GPU: one program for a machine that has one, and the same objects on an emulated device.
if(SKEIN_CUDA)
  include(tests/emulated/emulated.cmake)
endif()

# Network namespaces as hosts, and a SLURM of our own: as root only, else they say that they are skipped. Then scripts
# that install, unpack and run what was built as its users do. Exit status 77: skipped, and it says why.
if(NOT SKEIN_SANITIZE)
  foreach(script namespaces interfaces cut meddler slurm)
    add_test(NAME ${script} COMMAND ${PROJECT_SOURCE_DIR}/tests/${script} ${PROJECT_BINARY_DIR})
    set_tests_properties(${script} PROPERTIES LABELS root TIMEOUT 900 SKIP_RETURN_CODE 77 RUN_SERIAL TRUE)
  endforeach()
  foreach(script aarch64 old_processor install c_interface bundle doctor gpu_check papers scripts links readme torchrun wheel
                 beside_torch)
    add_test(NAME ${script} COMMAND ${PROJECT_SOURCE_DIR}/tests/${script} ${PROJECT_BINARY_DIR})
    set_tests_properties(${script} PROPERTIES LABELS script TIMEOUT 900 SKIP_RETURN_CODE 77 RUN_SERIAL TRUE)
  endforeach()
  set_tests_properties(papers readme torchrun wheel beside_torch PROPERTIES LABELS slow TIMEOUT 1800)
  add_test(NAME churn COMMAND ${PROJECT_SOURCE_DIR}/bench/churn 40 allreduce,sgp,gem --build ${PROJECT_BINARY_DIR}
           --runs ${PROJECT_BINARY_DIR}/churn)
  add_test(NAME churn_between_hosts COMMAND ${PROJECT_SOURCE_DIR}/bench/churn 40 allreduce --namespaces 4
           --build ${PROJECT_BINARY_DIR} --runs ${PROJECT_BINARY_DIR}/churn)
  set_tests_properties(churn churn_between_hosts PROPERTIES LABELS slow TIMEOUT 3600 SKIP_RETURN_CODE 77 RUN_SERIAL TRUE)
endif()
