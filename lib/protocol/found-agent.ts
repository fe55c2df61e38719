import { fieldsOf, listOf, parseJson, textOf, textsOf } from './fields';

/** An agent on the dashboard's own machine that can be connected. */
export interface FoundAgent {
  /** The runner's kind: `codex`. */
  kind: string;
  /** Name for people. */
  title: string;
  /** The program, socket or settings file by which it was found. */
  at: string;
  /** Commands that connect it, without the leading `interlude`. */
  commands: string[];
  /** The effect of the commands, in a sentence. */
  why: string;
}

/** Parses INTERLUDE_FOUND_AGENTS, which the launcher passes to the server. */
export function readFoundAgents(text: string | undefined): FoundAgent[] {
  return listOf(parseJson(text ?? '')).flatMap((one) => {
    const { kind, title, at, commands, why } = fieldsOf(one);
    const found = { kind: textOf(kind), title: textOf(title), at: textOf(at), why: textOf(why) };
    const isWhole = Object.values(found).every((value) => value !== null) && textsOf(commands).length > 0;
    return isWhole ? [{ ...(found as Omit<FoundAgent, 'commands'>), commands: textsOf(commands) }] : [];
  });
}
