# cmake --install: programs, library, headers, package, recipes, documentation. Everything is relative to the prefix.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/skein)

foreach(program ${PROGRAMS})
  if(TARGET ${program})
    # Found beside bin/, wherever the prefix has been moved to: what tools/make_bundle puts there.
    set_target_properties(${program} PROPERTIES INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
    install(TARGETS ${program} RUNTIME)
  endif()
endforeach()
install(TARGETS skein EXPORT skeinTargets ARCHIVE)
if(TARGET skein_c)
  install(TARGETS skein_c LIBRARY)
  install(FILES apps/embed/c/skein_c.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/skein)
endif()

# Both <skein/nn/models.h> and "nn/models.h" find the headers; the second is how they include each other.
target_include_directories(skein PUBLIC $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
                           $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/skein>)
install(DIRECTORY engine nn comm optim data DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/skein
        FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "engine/cpu" EXCLUDE PATTERN "engine/cuda" EXCLUDE
        PATTERN "optim/strategy" EXCLUDE PATTERN "comm/ucx" EXCLUDE)
install(FILES apps/embed/learner.h apps/embed/vector_worker.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/skein/apps/embed)
install(FILES apps/embed/skein.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/skein)

install(EXPORT skeinTargets NAMESPACE skein:: DESTINATION ${package_dir})
configure_package_config_file(tools/cmake/skeinConfig.cmake.in ${PROJECT_BINARY_DIR}/skeinConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/skeinConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/skeinConfig.cmake ${PROJECT_BINARY_DIR}/skeinConfigVersion.cmake
        DESTINATION ${package_dir})

install(DIRECTORY apps/config/recipes DESTINATION ${CMAKE_INSTALL_DATADIR}/skein)
install(DIRECTORY docs/ DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(FILES README.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY examples DESTINATION ${CMAKE_INSTALL_DOCDIR})
