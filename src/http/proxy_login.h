// Which proxy and which login a URL is asked with.
#pragma once

#include "http/http.h"

#include <string>
#include <string_view>

namespace containerize::http {

/// The proxy in the settings; empty if libcurl chooses.
std::string proxy_for(std::string_view url, const Settings& settings);
/// The proxy that will be used, as shown in messages; empty if there is none.
std::string proxy_name(std::string_view url, const Settings& settings);

/// Null if there is none.
const Login* login_for(std::string_view url, const Settings& settings);

} // namespace containerize::http
