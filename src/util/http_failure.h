// Why a download failed, in words that say what to check; and whether the same may work later.
#pragma once

#include "util/http.h"

#include <curl/curl.h>

namespace containerize::http {

/// One try, as far as messages tell of it.
struct Attempt {
    std::string url, host;       ///< without credentials
    std::string proxy;           ///< likewise; empty if there is none
    std::string redirected_to;   ///< another host that the server named; empty if it did not
    std::string message;         ///< libcurl's own
    long proxy_status = 0;       ///< what the proxy answered to CONNECT
    curl_off_t connect_time = 0; ///< microseconds; 0 if there was no connection
    const Settings* settings = nullptr;
};

Error explain_status(long status, const Attempt& attempt);
Error explain_code(CURLcode code, const Attempt& attempt);

bool status_may_pass(long status);
bool code_may_pass(CURLcode code, const Attempt& attempt);

/// The file or directory of certificates to verify servers with; empty: libcurl's default.
std::filesystem::path certificates(const Settings& settings);

} // namespace containerize::http
