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
  ...shortcutsOf('Sessions', {
    'sessions.search': { keys: ['/'], what: 'Search', everywhere: true },
    'sessions.first-found': {
      keys: ['ArrowDown'],
      what: 'From the search to what it found',
      everywhere: true,
      whileTyping: true,
    },
    'sessions.next': { keys: ['j', 'ArrowDown'], what: 'Next session' },
    'sessions.previous': { keys: ['k', 'ArrowUp'], what: 'Previous session' },
    'sessions.open': { keys: ['Enter'], what: 'Open it' },
    'sessions.leave-search': { keys: ['Escape'], what: 'Leave the search; once more, clear it' },
  }),
  ...shortcutsOf('Transcript', {
    'transcript.next': { keys: ['j'], what: 'Next turn' },
    'transcript.previous': { keys: ['k'], what: 'Previous turn' },
    'transcript.next-woken': { keys: ['w'], what: 'Next turn the agent woke for' },
    'transcript.previous-woken': { keys: ['W'], what: 'Previous one' },
    'transcript.page-down': { keys: ['PageDown'], what: 'A page down' },
    'transcript.page-up': { keys: ['PageUp'], what: 'A page up' },
    'transcript.latest': { keys: ['G', 'End'], what: 'Latest' },
    'transcript.first': { keys: ['Home'], what: 'Oldest loaded turn' },
    'transcript.log': { keys: ['l'], what: 'The agent’s log, beneath it', everywhere: true },
    'transcript.in-log': { keys: ['L'], what: 'Show the focused turn in the log', everywhere: true },
    'transcript.leave': { keys: ['Escape'], what: 'Back to the sessions', everywhere: true, once: true },
  }),
  ...shortcutsOf('Writing to the agent', {
    'message.write': { keys: ['c'], what: 'Write a message', everywhere: true },
    'message.send': { keys: ['Enter'], what: 'Send it' },
    'message.new-line': { keys: ['Shift+Enter'], what: 'New line' },
    'message.sent-before': { keys: ['ArrowUp'], what: 'What was sent before, in an empty message' },
    'message.leave': { keys: ['Escape'], what: 'Leave the message' },
    // Nobody presses it while they mean something else, as they do Esc, which leads out of fields, lists and panes.
    'turn.interrupt': {
      keys: ['Control+.', 'Meta+.'],
      what: 'Interrupt the turn that is open',
      everywhere: true,
      whileTyping: true,
      once: true,
    },
  }),
  ...shortcutsOf('Log', {
    'log.search': { keys: ['/'], what: 'Search the log' },
    'log.clear-search': { keys: ['Escape'], what: 'Leave the search; once more, clear it', once: true },
    'log.next-hit': { keys: ['n'], what: 'Next hit' },
    'log.previous-hit': { keys: ['N'], what: 'Previous hit' },
    'log.follow': { keys: ['f'], what: 'Follow the end' },
    'log.wrap': { keys: ['w'], what: 'Wrap long lines' },
    'log.level': { keys: ['1', '2', '3', '4', '5'], what: 'Show debug … fatal and above' },
    'log.first': { keys: ['g'], what: 'First line' },
    'log.last': { keys: ['G'], what: 'Last line' },
    'log.next': { keys: ['j'], what: 'Next line' },
    'log.previous': { keys: ['k'], what: 'Previous line' },
    'log.unfold': { keys: ['Enter'], what: 'Unfold it' },
    // One step out, and out of here is the transcript, not the list of sessions.
    'log.leave': { keys: ['Escape'], what: 'Back to the transcript', once: true },
  }),
  ...shortcutsOf('On a request', {
    'request.allow': { keys: ['a'], what: 'Allow', once: true },
    'request.deny': { keys: ['d'], what: 'Deny', once: true },
  }),
  ...shortcutsOf('Everywhere', {
    help: { keys: ['?'], what: 'This list', everywhere: true, overDialogs: true, once: true },
  }),
};

export type ShortcutId = keyof typeof SHORTCUTS;

function shortcutsOf<Id extends string>(where: string, shortcuts: Record<Id, Omit<Shortcut, 'where'>>) {
  const placed = Object.entries<Omit<Shortcut, 'where'>>(shortcuts).map(([id, shortcut]) => [
    id,
    { where, ...shortcut },
  ]);
  return Object.fromEntries(placed) as Record<Id, Shortcut>;
}

type Press = Pick<KeyboardEvent, 'key' | 'ctrlKey' | 'metaKey' | 'altKey' | 'shiftKey'>;

/** `Control+.`; of a sign that is typed with Shift only the sign. */
export function keyName({ key, ctrlKey, metaKey, altKey, shiftKey }: Press): string {
  const held = [ctrlKey && 'Control', metaKey && 'Meta', altKey && 'Alt', shiftKey && key.length > 1 && 'Shift'];
  return [...held, key].filter(Boolean).join('+');
}

/** For a key that only an element hears. */
export function isPress(id: ShortcutId, event: Press & Pick<KeyboardEvent, 'repeat'>): boolean {
  const { keys, once } = SHORTCUTS[id];
  return keys.includes(keyName(event)) && !(once && event.repeat);
}

const SIGNS: Record<string, string> = { ArrowDown: '↓', ArrowUp: '↑', Escape: 'Esc', Control: 'Ctrl' };

/** As it stands on the key: `Ctrl+.`, `⌘.`, `↓`. */
export function signOf(key: string): string {
  const parts = key.split('+').map((part) => SIGNS[part] ?? part);
  return parts.join('+').replace('Meta+', '⌘');
}
