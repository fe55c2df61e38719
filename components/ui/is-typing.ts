/** Fields that are ticked or pressed: no letter is meant for them. */
const PRESSED = /^(?:button|checkbox|color|file|image|radio|reset|submit)$/;

/** Whether a key belongs to a field, so that single-letter shortcuts keep out of it. */
export function isTyping(event: Event): boolean {
  const target = event.target;
  if (!(target instanceof HTMLElement)) return false;
  if (target instanceof HTMLInputElement) return !PRESSED.test(target.type) || isChoosing(target, event);
  return target.isContentEditable || /^(?:TEXTAREA|SELECT)$/.test(target.tagName);
}

/** The arrows lead from one of several to the next. */
function isChoosing({ type }: HTMLInputElement, event: Event): boolean {
  return type === 'radio' && event instanceof KeyboardEvent && event.key.startsWith('Arrow');
}
