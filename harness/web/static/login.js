"use strict";
// The invitation stands after the #, so that it is never sent in a request's address. The address bar drops it at once.
function enter() {
  const token = location.hash.slice(1);
  if (!token) return;
  history.replaceState(null, "", location.pathname);
  document.getElementById("token").value = token;
  document.getElementById("login").requestSubmit();
}

addEventListener("hashchange", enter); // the link was opened where this page was open already
enter();
