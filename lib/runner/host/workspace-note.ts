import { fieldsOf, isObject, listOf, parseJson, textOf } from '@interlude/protocol/fields';
import { truncateText } from '@interlude/protocol/text';

/**
 * What an agent has to know of the workspace that was made for it: which paths there are no files of its own, but links
 * into the main checkout. From INTERLUDE_WORKSPACE, which whoever makes the workspace sets:
 * `{"mode":"worktree","deps":"symlink","symlinks":["node_modules",{"path":".env"}]}`.
 */
export interface WorkspaceNote {
  /** For the agent, before its first message. Null if there is nothing to say. */
  text: string | null;
  /** What is wrong with the variable, in a sentence. */
  problem: string | null;
}

const MOST_LENGTH = 256 * 1024;
const MOST_PATHS = 50;
const LONGEST_PATH = 200;
const LONGEST_WORD = 40;
const NOTHING: WorkspaceNote = { text: null, problem: null };
const SHAPE = 'it is a JSON object as {"mode":"…","deps":"…","symlinks":["…"]}';

/** Never throws, whatever the variable holds. */
export function workspaceNote(variable: string | undefined): WorkspaceNote {
  if (variable === undefined || variable.trim() === '') return NOTHING;
  if (variable.length > MOST_LENGTH) return spoilt(`longer than ${MOST_LENGTH} characters`);
  const said = parseJson(variable);
  if (!isObject(said)) return spoilt('not a JSON object');
  const { mode, deps, symlinks } = said;
  if (symlinks !== undefined && !Array.isArray(symlinks)) return spoilt('without a list as its "symlinks"');
  const links = listOf(symlinks);
  const paths = links.flatMap((link) => textOf(link) ?? textOf(fieldsOf(link).path) ?? []);
  const odd = links.length - paths.length;
  const problem = odd === 0 ? null : `${odd} of the "symlinks" in INTERLUDE_WORKSPACE are no paths; ${SHAPE}`;
  return { text: paths.length === 0 ? null : textAbout(paths, mode, deps), problem };
}

function textAbout(paths: readonly string[], mode: unknown, deps: unknown): string {
  const about = [...word('mode', mode), ...word('dependencies', deps)].join(', ');
  const shown = paths.slice(0, MOST_PATHS).map((path) => `- ${oneLine(path, LONGEST_PATH)}`);
  const more = paths.length - shown.length;
  return [
    `A note on your workspace${about === '' ? '' : ` (${about})`}: it is a checkout of its own, but these untracked paths in it are symbolic links into the main checkout:`,
    ...shown,
    ...(more > 0 ? [`- and ${more} more`] : []),
    'Whatever you write, move or delete below them, you change in the main checkout, where others work. Leave them as they are, or put a copy in the place of a link before you change what it leads to.',
  ].join('\n');
}

function word(name: string, value: unknown): string[] {
  const text = textOf(value);
  return text === null ? [] : [`${name}: ${oneLine(text, LONGEST_WORD)}`];
}

/** As JSON has it: nothing in a path can pass for words of the note. */
function oneLine(text: string, most: number): string {
  return JSON.stringify(text.length > most ? `${truncateText(text, most)}…` : text);
}

function spoilt(how: string): WorkspaceNote {
  return { text: null, problem: `INTERLUDE_WORKSPACE is ${how}, and the agent is told nothing of it; ${SHAPE}` };
}
