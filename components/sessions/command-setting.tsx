'use client';

import { BASE_PATH } from '@interlude/protocol/base-path.mjs';
import { createContext, type ReactNode, useContext } from 'react';
import { useHydrated } from '@/components/ui/clock';

const SettingContext = createContext<string | null>('');

/** @param props.setting environment variables with which a pasted command finds this server; null if unknown */
export function CommandSettingProvider(props: { setting: string | null; children: ReactNode }) {
  return <SettingContext value={props.setting}>{props.children}</SettingContext>;
}

/** Prefix for Interlude’s commands; empty if they find this server without one. */
export function useCommandSetting(): string {
  const setting = useContext(SettingContext);
  const origin = useHydrated() ? location.origin + BASE_PATH : 'http://127.0.0.1:4319';
  return setting ?? `INTERLUDE_URL=${origin} `;
}
