/** Whether a dialog stands over the page: what is under it is in sight for the browser, and for nobody else. */
export function isCovered(element: Element): boolean {
  const dialog = document.querySelector('dialog:modal');
  return dialog !== null && !dialog.contains(element);
}
