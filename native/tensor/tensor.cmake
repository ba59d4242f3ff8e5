# The tensor core. Every C file below ops/ is one operator. Those that compute are compiled once for each
# level of CPU; registry.c asks the CPU at run time and takes one level's operators.

file(GLOB OPSCOPE_TENSOR_SOURCES CONFIGURE_DEPENDS
    tensor/base/*.c tensor/memory/*.c tensor/core/*.c tensor/kernels/*.c
    tensor/autograd/*.c tensor/dispatch/*.c tensor/backward/*.c)
file(GLOB OPSCOPE_OPERATOR_SOURCES CONFIGURE_DEPENDS tensor/ops/*/*.c)

set(OPSCOPE_LEVELS baseline)
set(OPSCOPE_LEVEL_baseline "")
if(OPSCOPE_CPU_LEVELS AND CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
    set_source_files_properties(tensor/core/registry.c PROPERTIES
        COMPILE_DEFINITIONS OPSCOPE__HAS_X86_LEVELS)
    list(APPEND OPSCOPE_LEVELS avx2 avx512)
    set(OPSCOPE_LEVEL_avx2 -mavx2 -mfma -mf16c)
    set(OPSCOPE_LEVEL_avx512 ${OPSCOPE_LEVEL_avx2} -mavx512f -mavx512dq -mavx512bw -mavx512vl
        -mprefer-vector-width=512)
endif()

# The folders whose operators are faster with wider vectors. The others move elements, search, or call the
# BLAS: every level uses the baseline's.
set(OPSCOPE_FOLDERS_WITH_LEVELS elementwise nn random reduce)

# Loops over elements are for the vectoriser.
set(OPSCOPE_OPTIMIZE -O3)
# A loop of a few instructions that lies across two lines of code is a third slower at times: a product of
# 1e5 float32 12 to 14 us instead of 9 on Zen 4.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU")
    list(APPEND OPSCOPE_OPTIMIZE -falign-loops=64)
endif()
if(OPSCOPE_SANITIZER)
    set(OPSCOPE_OPTIMIZE "")
endif()
# Where there are levels, the baseline is for CPUs that are rare, and is kept small.
set(OPSCOPE_OPTIMIZE_baseline ${OPSCOPE_OPTIMIZE})
if(OPSCOPE_LEVELS MATCHES ";" AND NOT OPSCOPE_SANITIZER)
    set(OPSCOPE_OPTIMIZE_baseline -O2 -ftree-vectorize)
endif()
set(OPSCOPE_OPTIMIZE_avx2 ${OPSCOPE_OPTIMIZE})
set(OPSCOPE_OPTIMIZE_avx512 ${OPSCOPE_OPTIMIZE})
# Convolutions multiply and add in one instruction where the CPU has it. (No other operator does, because
# results would then differ from level to level.)
file(GLOB OPSCOPE_CONVOLUTION_SOURCES tensor/ops/nn/conv2d*.c)
set_source_files_properties(${OPSCOPE_CONVOLUTION_SOURCES} PROPERTIES COMPILE_OPTIONS -ffp-contract=fast)
set_source_files_properties(tensor/kernels/convert.c PROPERTIES COMPILE_OPTIONS "${OPSCOPE_OPTIMIZE}")

add_library(opscope_tensor STATIC ${OPSCOPE_TENSOR_SOURCES})
target_include_directories(opscope_tensor PUBLIC include PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
# Not the record library itself: programs link it, the Python modules share libopscope.so.
target_link_libraries(opscope_tensor PUBLIC opscope_flags ${CMAKE_DL_LIBS} m)

foreach(level IN LISTS OPSCOPE_LEVELS)
    set(sources "")
    set(names "")
    foreach(source IN LISTS OPSCOPE_OPERATOR_SOURCES)
        get_filename_component(name ${source} NAME_WE)
        get_filename_component(folder ${source} DIRECTORY)
        get_filename_component(folder ${folder} NAME)
        list(APPEND names ${name})
        if(level STREQUAL baseline OR folder IN_LIST OPSCOPE_FOLDERS_WITH_LEVELS)
            list(APPEND sources ${source})
            set(level_of_${name} ${level})
        endif()
    endforeach()
    # In the order of names, whatever their folders.
    list(SORT names)
    # The list of this level's operators, for registry.c.
    set(declared "")
    set(listed "")
    foreach(name IN LISTS names)
        set(operator opscope__operator_${name}_${level_of_${name}})
        string(APPEND declared "extern const struct opscope__operator_spec ${operator};\n")
        string(APPEND listed "    &${operator},\n")
    endforeach()
    set(list_source ${CMAKE_CURRENT_BINARY_DIR}/operators_${level}.c)
    file(GENERATE OUTPUT ${list_source} CONTENT
"/* Written by tensor.cmake: the operators, compiled for ${level}. */
#include \"tensor/core/registry.h\"
${declared}
const struct opscope__operator_spec *const opscope__operators_${level}[] = {
${listed}    NULL};
")
    add_library(opscope_ops_${level} OBJECT ${sources} ${list_source})
    target_include_directories(opscope_ops_${level} PRIVATE include ${CMAKE_CURRENT_SOURCE_DIR})
    target_link_libraries(opscope_ops_${level} PRIVATE opscope_flags)
    # Contraction would make results differ from level to level; integers wrap around.
    target_compile_options(opscope_ops_${level} PRIVATE
        -ffp-contract=off -fno-trapping-math -fwrapv ${OPSCOPE_LEVEL_${level}} ${OPSCOPE_OPTIMIZE_${level}})
    target_compile_definitions(opscope_ops_${level} PRIVATE OPSCOPE__LEVEL=${level})
    target_sources(opscope_tensor PRIVATE $<TARGET_OBJECTS:opscope_ops_${level}>)
endforeach()
