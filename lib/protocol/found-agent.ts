import { fieldsOf, listOf, parseJson, textOf, textsOf } from './fields';

/** An agent on the dashboard's own machine that could be connected. */
export interface FoundAgent {
  /** Of runner: `codex`. */
  kind: string;
  /** What people call it. */
  title: string;
  /** The program, the socket or the settings by which it was found. */
  at: string;
  /** What connects it, behind `interlude`, one after the other. */
  commands: string[];
  /** What that does, in a sentence. */
  why: string;
}

/** As the process that starts the server hands it over, in INTERLUDE_FOUND_AGENTS. */
export function readFoundAgents(text: string | undefined): FoundAgent[] {
  return listOf(parseJson(text ?? '')).flatMap((one) => {
    const { kind, title, at, commands, why } = fieldsOf(one);
    const found = { kind: textOf(kind), title: textOf(title), at: textOf(at), why: textOf(why) };
    const isWhole = Object.values(found).every((value) => value !== null) && textsOf(commands).length > 0;
    return isWhole ? [{ ...(found as Omit<FoundAgent, 'commands'>), commands: textsOf(commands) }] : [];
  });
}
