import { recorded as acp } from './acp/recorded';
import { recorded as agentapi } from './agentapi/recorded';
import { recorded as agui } from './agui/recorded';
import { recorded as claude } from './claude/recording';
import { recorded as codex } from './codex/recorded';
import { recorded as opencode } from './opencode/recorded';
import type { RecordedKind } from './recorded-kind';

/** The kinds whose recordings can be replayed: the folders beside this file. */
export const RECORDED_KINDS: Readonly<Record<string, RecordedKind>> = { acp, agentapi, agui, claude, codex, opencode };
