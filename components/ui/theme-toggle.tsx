'use client';

import { Monitor, Moon, Sun } from 'lucide';
import { useTheme } from './appearance';
import { Icon } from './icon';

const NEXT = { system: 'light', light: 'dark', dark: 'system' } as const;
const ICON = { system: Monitor, light: Sun, dark: Moon };

export function ThemeToggle() {
  const [current, setTheme] = useTheme();
  return (
    <button
      type="button"
      onClick={() => setTheme(NEXT[current])}
      aria-label={`Theme: ${current}. Change to ${NEXT[current]}`}
      title={`Theme: ${current}`}
      className="hit grid size-5 place-items-center text-ink-3 hover:text-ink"
    >
      <Icon of={ICON[current]} size={14} strokeWidth={1.75} />
    </button>
  );
}
