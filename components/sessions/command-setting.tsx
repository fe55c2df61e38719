'use client';

import { BASE_PATH } from '@interlude/protocol/base-path.mjs';
import { createContext, type ReactNode, useContext } from 'react';
import { useHydrated } from '@/components/ui/clock';

const SettingContext = createContext<string | null>('');

/** @param props.setting what finds this server where a command is pasted; null if nobody knows */
export function CommandSettingProvider(props: { setting: string | null; children: ReactNode }) {
  return <SettingContext value={props.setting}>{props.children}</SettingContext>;
}

/** What is written before a command of ours; empty if it finds this server by itself. */
export function useCommandSetting(): string {
  const setting = useContext(SettingContext);
  const origin = useHydrated() ? location.origin + BASE_PATH : 'http://127.0.0.1:4319';
  return setting ?? `INTERLUDE_URL=${origin} `;
}
