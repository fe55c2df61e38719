import { kind as acp } from './acp/kind';
import { kind as agentapi } from './agentapi/kind';
import { kind as agui } from './agui/kind';
import { kind as claude } from './claude/kind';
import { kind as codex } from './codex/kind';
import { kind as hooks } from './hooks/kind';
import type { KindName } from './kind-titles';
import { kind as opencode } from './opencode/kind';
import type { RunnerKind } from './runner-kind';

export const KINDS: Readonly<Record<string, RunnerKind>> = {
  ...{ acp, agentapi, agui, claude, codex, hooks, opencode },
} satisfies Record<KindName, RunnerKind>;
