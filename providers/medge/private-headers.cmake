# SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#
# libibverbs and the headers it keeps for its providers. The distribution ships
# the library and its public headers; the private ones come from the rdma-core
# source of the same private ABI.

# The private ABI is named by a symbol version of the installed library.
function(medge_find_libibverbs)
  find_library(LIBIBVERBS_LIBRARY ibverbs)
  if (NOT LIBIBVERBS_LIBRARY)
    message(FATAL_ERROR "libibverbs is missing: install libibverbs-dev.")
  endif()

  file(STRINGS "${LIBIBVERBS_LIBRARY}" version REGEX "^IBVERBS_PRIVATE_[0-9]+$")
  list(GET version 0 version)
  string(REPLACE "IBVERBS_PRIVATE_" "" version "${version}")
  if (NOT version MATCHES "^[0-9]+$")
    message(FATAL_ERROR
      "${LIBIBVERBS_LIBRARY} does not say which private ABI it has.")
  endif()
  set(IBVERBS_PABI_VERSION ${version} PARENT_SCOPE)
  message(STATUS "libibverbs: ${LIBIBVERBS_LIBRARY}, private ABI ${version}")
endfunction()

# Sets RDMA_CORE_PRIVATE_INCLUDE.
function(medge_find_private_headers)
  execute_process(
    COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/get-private-headers"
      --abi "${IBVERBS_PABI_VERSION}" --source "${RDMA_CORE_SOURCE}"
    OUTPUT_VARIABLE include
    OUTPUT_STRIP_TRAILING_WHITESPACE
    RESULT_VARIABLE result)
  if (NOT result EQUAL 0)
    message(FATAL_ERROR
      "rdma-core's private headers are missing (see the message above).")
  endif()
  set(RDMA_CORE_PRIVATE_INCLUDE "${include}" PARENT_SCOPE)
  message(STATUS "rdma-core's private headers: ${include}")
endfunction()
