import { readStored, writeStored } from '@/components/ui/browser-storage';
import { noticeSettings, SETTINGS_KEY } from './notices';

/** Why this browser shows no notifications, in its own words, is kept under this name; empty while it does. */
export const REFUSAL_KEY = 'notices-refused';

/** Whether this browser has what it takes, as far as that is known without trying. Only in a browser. */
export function canNotify(): boolean {
  return 'Notification' in window && window.isSecureContext && 'locks' in navigator;
}

/** It was tried, and the browser refused: that is said where notifications are turned on, and nothing is tried again. */
export function noteRefusal(error: unknown): void {
  writeStored(SETTINGS_KEY, JSON.stringify({ ...noticeSettings(readStored(SETTINGS_KEY)), isOn: false }));
  writeStored(REFUSAL_KEY, error instanceof Error && error.message !== '' ? error.message : String(error));
}
