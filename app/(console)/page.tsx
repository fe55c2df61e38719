/** The list of sessions is the layout's own; there is nothing to add to it here. */
export default function SessionsPage() {
  return null;
}
