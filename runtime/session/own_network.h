// A network that holds one process and its children alone.
#pragma once

namespace trivium::runtime::session {

/// Whether this process may give a child a network of its own: of the system's network namespaces, with nothing but the
/// loopback interface in it. Tried in a process that ends at once.
bool can_have_own_network();

/// Moves this process into such a network. For a child before it runs another program; nothing but system calls.
/// Returns whether it worked.
bool enter_own_network();

}  // namespace trivium::runtime::session
