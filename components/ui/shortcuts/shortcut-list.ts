/** What can be done with a key. */
interface Shortcut {
  /** As `keyName` names them. */
  keys: readonly string[];
  /** It acts wherever the focus is, and not only where it is handled or where no other keys are. */
  everywhere?: true;
  /** It acts in a field, too. */
  whileTyping?: true;
  /** It acts while a dialog is open, too. */
  overDialogs?: true;
  /** Once a press: a key that is held was meant for the first step. */
  once?: true;
}

/** All of them. What each does is said in `SHORTCUT_WORDS`, which come with the list that "?" shows. */
export const SHORTCUTS = {
  'sessions.search': { keys: ['/'], everywhere: true },
  'sessions.first-found': { keys: ['ArrowDown'], everywhere: true, whileTyping: true },
  'sessions.next': { keys: ['j', 'ArrowDown'] },
  'sessions.previous': { keys: ['k', 'ArrowUp'] },
  'sessions.open': { keys: ['Enter'] },
  'sessions.leave-search': { keys: ['Escape'] },
  'transcript.next': { keys: ['j'] },
  'transcript.previous': { keys: ['k'] },
  'transcript.next-woken': { keys: ['w'] },
  'transcript.previous-woken': { keys: ['W'] },
  'transcript.page-down': { keys: ['PageDown'] },
  'transcript.page-up': { keys: ['PageUp'] },
  'transcript.latest': { keys: ['G', 'End'] },
  'transcript.first': { keys: ['Home'] },
  'transcript.log': { keys: ['l'], everywhere: true },
  'transcript.in-log': { keys: ['L'], everywhere: true },
  'session.why': { keys: ['E'], everywhere: true, once: true },
  'session.arrange': { keys: ['M'], everywhere: true, once: true },
  'transcript.leave': { keys: ['Escape'], everywhere: true, once: true },
  'message.write': { keys: ['c'], everywhere: true },
  'message.send': { keys: ['Enter'] },
  'message.new-line': { keys: ['Shift+Enter'] },
  'message.sent-before': { keys: ['ArrowUp'] },
  'message.leave': { keys: ['Escape'] },
  // Nobody presses it while they mean something else, as they do Esc, which leads out of fields, lists and panes.
  'turn.interrupt': { keys: ['Control+.', 'Meta+.'], everywhere: true, whileTyping: true, once: true },
  'log.search': { keys: ['/'] },
  'log.clear-search': { keys: ['Escape'], once: true },
  'log.next-hit': { keys: ['n'] },
  'log.previous-hit': { keys: ['N'] },
  'log.follow': { keys: ['f'] },
  'log.wrap': { keys: ['w'] },
  'log.level': { keys: ['1', '2', '3', '4', '5'] },
  'log.first': { keys: ['g'] },
  'log.last': { keys: ['G'] },
  'log.next': { keys: ['j'] },
  'log.previous': { keys: ['k'] },
  'log.unfold': { keys: ['Enter'] },
  // One step out, and out of here is the transcript, not the list of sessions.
  'log.leave': { keys: ['Escape'], once: true },
  'inbox.next-request': { keys: ['r'], everywhere: true, once: true },
  'inbox.next': { keys: ['j', 'ArrowDown'] },
  'inbox.previous': { keys: ['k', 'ArrowUp'] },
  'inbox.unfold': { keys: ['o'], once: true },
  'inbox.select': { keys: ['x'], once: true },
  'inbox.seen': { keys: ['s'], once: true },
  'inbox.claim': { keys: ['c'], once: true },
  'inbox.snooze': { keys: ['z'], once: true },
  'request.allow': { keys: ['a'], once: true },
  'request.deny': { keys: ['d'], once: true },
  help: { keys: ['?'], everywhere: true, overDialogs: true, once: true },
} as const satisfies Record<string, Shortcut>;

export type ShortcutId = keyof typeof SHORTCUTS;

export function shortcutOf(id: ShortcutId): Shortcut {
  return SHORTCUTS[id];
}

type Press = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey'>;

/** `Control+.`; of a sign that is typed with Shift only the sign. */
export function keyName({ key, ctrlKey, metaKey, altKey, shiftKey }: Press): string {
  const held = [ctrlKey && 'Control', metaKey && 'Meta', altKey && 'Alt', shiftKey && key.length > 1 && 'Shift'];
  return [...held, key].filter(Boolean).join('+');
}

/** For a key that only an element hears. */
export function isPress(id: ShortcutId, event: Press & Pick<KeyboardEvent, 'repeat'>): boolean {
  const { keys, once } = shortcutOf(id);
  return keys.includes(keyName(event)) && !(once && event.repeat);
}
