# How every target of the house is built: one folder, one library; one test program per folder.
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

find_program(PAGODA_CCACHE ccache)
if(PAGODA_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${PAGODA_CCACHE})
endif()

add_library(pagoda_flags INTERFACE)
# No contraction and no fast-math: the same source must give the same bits under every compiler.
target_compile_options(pagoda_flags INTERFACE
  -Wall -Wextra -Wshadow -Werror -ffp-contract=off -fno-math-errno -fstack-protector-strong)
target_compile_definitions(pagoda_flags INTERFACE $<$<NOT:$<CONFIG:Debug>>:_FORTIFY_SOURCE=2> _GLIBCXX_ASSERTIONS)
target_include_directories(pagoda_flags INTERFACE ${CMAKE_SOURCE_DIR}/include ${CMAKE_SOURCE_DIR}/src)
target_link_options(pagoda_flags INTERFACE -pie -Wl,-z,relro,-z,now)
if(CMAKE_CXX_COMPILER_ID MATCHES Clang)
  target_link_options(pagoda_flags INTERFACE -fuse-ld=lld)
else()
  target_compile_options(pagoda_flags INTERFACE -Wno-restrict)  # g++ 12 sees overlaps in std::string that are none
endif()
if(PAGODA_SANITIZE)
  target_compile_options(pagoda_flags INTERFACE
    -fsanitize=${PAGODA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1 -U_FORTIFY_SOURCE)
  target_link_options(pagoda_flags INTERFACE -fsanitize=${PAGODA_SANITIZE})
endif()
if(PAGODA_FUZZ)
  target_compile_options(pagoda_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

# pagoda_library(name DEPS a b): all .cc files of the calling folder and its sub-folders, depending on the listed layers.
function(pagoda_library name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  if(NOT sources)
    add_library(pagoda_${name} INTERFACE)
    return()
  endif()
  add_library(pagoda_${name} STATIC ${sources})
  list(TRANSFORM ARG_DEPS PREPEND pagoda_)
  target_link_libraries(pagoda_${name} PUBLIC pagoda_flags ${ARG_DEPS} PRIVATE ${ARG_LIBS})
endfunction()

# pagoda_test(folder DEPS ...): tests/<folder>/*_test.cc as one program, one ctest entry.
function(pagoda_test name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/${name}/*.cc)
  if(NOT sources)
    return()
  endif()
  add_executable(test_${name} ${sources})
  list(TRANSFORM ARG_DEPS PREPEND pagoda_)
  target_link_libraries(test_${name} PRIVATE pagoda_flags ${ARG_DEPS} ${ARG_LIBS} GTest::gtest_main)
  target_compile_definitions(test_${name} PRIVATE
    PAGODA_TEST_DATA="${CMAKE_SOURCE_DIR}/tests" PAGODA_PROGRAM="${CMAKE_BINARY_DIR}/bin/pagoda")
  # The long matrix of test_engine is a test of its own, so that ctest runs it beside the others.
  if(name STREQUAL "engine")
    add_test(NAME ${name} COMMAND test_${name} --gtest_filter=-*Determinism*)
    add_test(NAME ${name}_determinism COMMAND test_${name} --gtest_filter=*Determinism*)
    set_tests_properties(${name}_determinism PROPERTIES TIMEOUT 1800)
  else()
    add_test(NAME ${name} COMMAND test_${name})
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT 1800)
endfunction()
