# Writes what the binary carries as one C file, OUT: the Lua modules under ROOT, compiled by LUAJIT
# (scripts/embed.lua), and the sandbox's data files. Run by CMake at build time. The bytes come in by the assembler, which takes a file as
# it is; a compiler takes minutes for megabytes of numbers.
set(BODY "// Generated from lua/; do not edit.\n#include \"script/embedded.h\"\n\n")
set(INDEX 0)

# Adds the bytes of a file between the symbols file_<INDEX> and file_<INDEX>_end.
function(embed FILE)
  string(APPEND BODY
    "__asm__(\".section .rodata\\nfile_${INDEX}:\\n.incbin \\\"${FILE}\\\"\\n\"\n"
    "        \"file_${INDEX}_end:\\n.byte 0\\n.previous\\n\");\n"
    "extern const char file_${INDEX}[] __attribute__((visibility(\"hidden\")));\n"
    "extern const char file_${INDEX}_end[] __attribute__((visibility(\"hidden\")));\n")
  set(BODY "${BODY}" PARENT_SCOPE)
endfunction()

file(GLOB_RECURSE FILES RELATIVE ${ROOT} ${ROOT}/kube/*.lua)
list(FILTER FILES EXCLUDE REGEX "/_meta/")
list(SORT FILES)
set(COMPILED ${OUT}.d)
foreach(FILE ${FILES})
  get_filename_component(DIRECTORY ${COMPILED}/${FILE} DIRECTORY)
  file(MAKE_DIRECTORY ${DIRECTORY})
endforeach()
execute_process(COMMAND ${LUAJIT} ${CMAKE_CURRENT_LIST_DIR}/embed.lua ${ROOT} ${COMPILED} ${FILES}
  COMMAND_ERROR_IS_FATAL ANY)
set(TABLE "")
foreach(FILE ${FILES})
  embed(${COMPILED}/${FILE})
  string(REGEX REPLACE "\\.lua$" "" MODULE "${FILE}")
  string(REGEX REPLACE "/init$" "" MODULE "${MODULE}")
  string(REPLACE "/" "." MODULE "${MODULE}")
  string(APPEND TABLE "    {\"${MODULE}\", file_${INDEX}, file_${INDEX}_end},\n")
  math(EXPR INDEX "${INDEX} + 1")
endforeach()
string(APPEND BODY "\nconst struct mw_embedded mw_embedded_lua[] = {\n${TABLE}    {0, 0, 0},\n};\n\n")

file(GLOB_RECURSE FILES RELATIVE ${ROOT}/kube/sandbox/data ${ROOT}/kube/sandbox/data/*)
list(SORT FILES)
set(TABLE "")
foreach(FILE ${FILES})
  embed(${ROOT}/kube/sandbox/data/${FILE})
  string(APPEND TABLE "    {\"${FILE}\", file_${INDEX}, file_${INDEX}_end},\n")
  math(EXPR INDEX "${INDEX} + 1")
endforeach()
string(APPEND BODY
  "\nconst struct mw_embedded_file mw_embedded_data[] = {\n${TABLE}    {0, 0, 0},\n};\n")
file(WRITE ${OUT} "${BODY}")
