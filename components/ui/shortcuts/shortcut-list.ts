/** What can be done with a key. */
interface Shortcut {
  where: string;
  /** As `keyName` names them. */
  keys: readonly string[];
  what: string;
  /** It acts wherever the focus is, and not only where it is handled or where no other keys are. */
  everywhere?: true;
  /** It acts in a field, too. */
  whileTyping?: true;
  /** It acts while a dialog is open, too. */
  overDialogs?: true;
  /** Once a press: a key that is held was meant for the first step. */
  once?: true;
}

/** All of them. The list that "?" shows is drawn from this. */
export const SHORTCUTS = {
  'sessions.search': { where: 'Sessions', keys: ['/'], what: 'Search', everywhere: true },
  'sessions.first-found': {
    where: 'Sessions',
    keys: ['ArrowDown'],
    what: 'From the search to what it found',
    everywhere: true,
    whileTyping: true,
  },
  'sessions.next': { where: 'Sessions', keys: ['j', 'ArrowDown'], what: 'Next session' },
  'sessions.previous': { where: 'Sessions', keys: ['k', 'ArrowUp'], what: 'Previous session' },
  'sessions.open': { where: 'Sessions', keys: ['Enter'], what: 'Open it' },
  'sessions.leave-search': { where: 'Sessions', keys: ['Escape'], what: 'Leave the search; once more, clear it' },

  'transcript.next': { where: 'Transcript', keys: ['j'], what: 'Next turn' },
  'transcript.previous': { where: 'Transcript', keys: ['k'], what: 'Previous turn' },
  'transcript.next-woken': { where: 'Transcript', keys: ['w'], what: 'Next turn the agent woke for' },
  'transcript.previous-woken': { where: 'Transcript', keys: ['W'], what: 'Previous one' },
  'transcript.page-down': { where: 'Transcript', keys: ['PageDown'], what: 'A page down' },
  'transcript.page-up': { where: 'Transcript', keys: ['PageUp'], what: 'A page up' },
  'transcript.latest': { where: 'Transcript', keys: ['G', 'End'], what: 'Latest' },
  'transcript.first': { where: 'Transcript', keys: ['Home'], what: 'Oldest loaded turn' },
  'transcript.log': { where: 'Transcript', keys: ['l'], what: 'The agent’s log, beneath it', everywhere: true },
  'transcript.in-log': {
    where: 'Transcript',
    keys: ['L'],
    what: 'Show the focused turn in the log',
    everywhere: true,
  },
  'transcript.leave': {
    where: 'Transcript',
    keys: ['Escape'],
    what: 'Back to the sessions',
    everywhere: true,
    once: true,
  },

  'message.write': { where: 'Writing to the agent', keys: ['c'], what: 'Write a message', everywhere: true },
  'message.send': { where: 'Writing to the agent', keys: ['Enter'], what: 'Send it' },
  'message.new-line': { where: 'Writing to the agent', keys: ['Shift+Enter'], what: 'New line' },
  'message.sent-before': {
    where: 'Writing to the agent',
    keys: ['ArrowUp'],
    what: 'What was sent before, in an empty message',
  },
  'message.leave': { where: 'Writing to the agent', keys: ['Escape'], what: 'Leave the message' },
  // Nobody presses it while they mean something else, as they do Esc, which leads out of fields, lists and panes.
  'turn.interrupt': {
    where: 'Writing to the agent',
    keys: ['Control+.', 'Meta+.'],
    what: 'Interrupt the turn that is open',
    everywhere: true,
    whileTyping: true,
    once: true,
  },

  'log.search': { where: 'Log', keys: ['/'], what: 'Search the log' },
  'log.clear-search': {
    where: 'Log',
    keys: ['Escape'],
    what: 'Leave the search; once more, clear it',
    once: true,
  },
  'log.next-hit': { where: 'Log', keys: ['n'], what: 'Next hit' },
  'log.previous-hit': { where: 'Log', keys: ['N'], what: 'Previous hit' },
  'log.follow': { where: 'Log', keys: ['f'], what: 'Follow the end' },
  'log.wrap': { where: 'Log', keys: ['w'], what: 'Wrap long lines' },
  'log.level': { where: 'Log', keys: ['1', '2', '3', '4', '5'], what: 'Show debug … fatal and above' },
  'log.first': { where: 'Log', keys: ['g'], what: 'First line' },
  'log.last': { where: 'Log', keys: ['G'], what: 'Last line' },
  'log.next': { where: 'Log', keys: ['j'], what: 'Next line' },
  'log.previous': { where: 'Log', keys: ['k'], what: 'Previous line' },
  'log.unfold': { where: 'Log', keys: ['Enter'], what: 'Unfold it' },
  // One step out, and out of here is the transcript, not the list of sessions.
  'log.leave': { where: 'Log', keys: ['Escape'], what: 'Back to the transcript', once: true },

  'request.allow': { where: 'On a request', keys: ['a'], what: 'Allow', once: true },
  'request.deny': { where: 'On a request', keys: ['d'], what: 'Deny', once: true },

  help: { where: 'Everywhere', keys: ['?'], what: 'This list', everywhere: true, overDialogs: true, once: true },
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

const SIGNS: Record<string, string> = { ArrowDown: '↓', ArrowUp: '↑', Escape: 'Esc', Control: 'Ctrl' };

/** As it stands on the key: `Ctrl+.`, `⌘.`, `↓`. */
export function signOf(key: string): string {
  const parts = key.split('+').map((part) => SIGNS[part] ?? part);
  return parts.join('+').replace('Meta+', '⌘');
}
