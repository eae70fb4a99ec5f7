# skein._skein, the module of the Python package in apps/embed/python/skein: built where Python's headers and nanobind are
# found, which scripts/install --test puts into build/python. Included by CMakeLists.txt.
if(NOT Python_EXECUTABLE AND EXISTS ${PROJECT_SOURCE_DIR}/build/python/bin/python)
  set(Python_EXECUTABLE ${PROJECT_SOURCE_DIR}/build/python/bin/python)
endif()
find_package(Python 3.9 QUIET COMPONENTS Interpreter Development.Module)
if(Python_FOUND)
  execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir OUTPUT_STRIP_TRAILING_WHITESPACE
                  OUTPUT_VARIABLE nanobind_ROOT ERROR_QUIET)
  find_package(nanobind CONFIG QUIET)
endif()
if(nanobind_FOUND AND NOT SKEIN_SANITIZE)
  option(SKEIN_PYTHON "Build the Python module" ON)
else()
  option(SKEIN_PYTHON "Build the Python module" OFF)
endif()
if(NOT SKEIN_PYTHON)
  message(STATUS "skein: without the Python module (it needs Python's headers and nanobind; scripts/install --test)")
  return()
endif()
find_package(nanobind CONFIG REQUIRED)
file(GLOB python_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/apps/embed/python/*.cc)
nanobind_add_module(_skein NB_STATIC ${python_sources})
target_link_libraries(_skein PRIVATE skein_apps)
target_compile_options(_skein PRIVATE -O1)
# The package can be imported from the build folder.
set(package ${PROJECT_SOURCE_DIR}/apps/embed/python/skein)
file(GLOB scripts CONFIGURE_DEPENDS ${package}/*.py)
set_target_properties(_skein PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/python/skein LINK_DEPENDS "${scripts}")
add_custom_command(TARGET _skein POST_BUILD VERBATIM
                   COMMAND ${CMAKE_COMMAND} -E copy ${scripts} ${PROJECT_BINARY_DIR}/python/skein)
install(TARGETS _skein LIBRARY DESTINATION skein COMPONENT python EXCLUDE_FROM_ALL)
install(PROGRAMS $<TARGET_FILE:train_imagenet> $<TARGET_FILE:gossip_avg> DESTINATION skein/bin COMPONENT python
        EXCLUDE_FROM_ALL)
