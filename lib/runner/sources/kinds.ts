import { kind as claude } from './claude/kind';
import { kind as hooks } from './hooks/kind';
import type { RunnerKind } from './runner-kind';

/** `interlude runner <kind>`: the folders beside this file. */
export const KINDS: Readonly<Record<string, RunnerKind>> = { claude, hooks };
