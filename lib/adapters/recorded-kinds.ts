import { recorded as claude } from './claude/recording';
import type { RecordedKind } from './recorded-kind';

/** The kinds whose recordings can be replayed: the folders beside this file. */
export const RECORDED_KINDS: Readonly<Record<string, RecordedKind>> = { claude };
