// Explains why a download failed, in words that say what to check, and whether a retry may help.
#pragma once

#include "http/http.h"

#include <curl/curl.h>

namespace containerize::http {

/// One try, as messages describe it.
struct Attempt {
    std::string url, host;       ///< without credentials
    std::string proxy;           ///< likewise; empty if there is none
    std::string redirected_to;   ///< another host that the server redirected to; empty if it did not
    std::string message;         ///< libcurl's error message
    long proxy_status = 0;       ///< the proxy's answer to CONNECT
    curl_off_t connect_time = 0; ///< microseconds; 0 if there was no connection
    const Settings* settings = nullptr;
};

Error explain_status(long status, const Attempt& attempt);
Error explain_code(CURLcode code, const Attempt& attempt);

bool status_may_pass(long status);
bool code_may_pass(CURLcode code, const Attempt& attempt);

/// The file or directory of certificates to verify servers with: from the settings, else from
/// REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE, SSL_CERT_FILE or SSL_CERT_DIR, else the distribution's. Empty:
/// libcurl's default.
std::filesystem::path certificates(const Settings& settings);

} // namespace containerize::http
