# Writes the commit that is built to the file OUTPUT, if it is another one. SOURCE is a checkout, or an archive made by
# `git archive`, in which commit.txt has the commit. Of any other source, nothing is known.
set(commit "")
execute_process(COMMAND git -C ${SOURCE} rev-parse --show-toplevel OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
file(REAL_PATH ${SOURCE} source)
if(NOT failed AND top STREQUAL source) # the source may be an archive that lies in the checkout of something else
  execute_process(COMMAND git -C ${SOURCE} describe --tags --always --dirty OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
else()
  file(STRINGS ${SOURCE}/src/main/commit.txt commit LIMIT_COUNT 1)
  if(commit MATCHES "Format")
    set(commit "")
  endif()
endif()
file(WRITE ${OUTPUT}.new "${commit}\n")
file(COPY_FILE ${OUTPUT}.new ${OUTPUT} ONLY_IF_DIFFERENT)
file(REMOVE ${OUTPUT}.new)
