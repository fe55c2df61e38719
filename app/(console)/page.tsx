/** Empty: the layout renders the list of sessions. */
export default function SessionsPage() {
  return null;
}
