import { signs as acp } from './acp/signs';
import { signs as agentapi } from './agentapi/signs';
import { signs as claude } from './claude/signs';
import { signs as codex } from './codex/signs';
import { signs as hooks } from './hooks/signs';
import { signs as opencode } from './opencode/signs';

/** By which an agent is known to be on this machine. */
export interface AgentSign {
  /** What people call it: `Gemini CLI`. */
  title: string;
  /** One of these programs is on the PATH, … */
  programs?: readonly string[];
  /** … or one of these files is there: a socket, settings. `~` is the home folder, `$NAME` a variable. */
  files?: readonly string[];
  /** What connects it, behind `interlude`; several run one after the other. */
  commands: readonly string[];
  /** What connecting it does, in a sentence. */
  why: string;
}

/** The signs of each kind, beside its source: light enough for the start of the dashboard. Agents behind an address have none. */
export const KIND_SIGNS: Readonly<Record<string, readonly AgentSign[]>> = {
  claude,
  hooks,
  codex,
  opencode,
  acp,
  agentapi,
};
