import { type EmbedTheme, isTheme } from './port-messages';

const DARK = '(prefers-color-scheme: dark)';

let chosen: EmbedTheme = 'system';
let isFollowing = false;

/** What the address names, until the page around this one says otherwise; not all of them do. */
export function applyNamedTheme(): void {
  const named = new URLSearchParams(location.search).get('theme');
  applyTheme(isTheme(named) ? named : 'system');
}

/** Shows this page in a theme, as the dashboard's own switch does, but for nobody else and not for the next visit. */
export function applyTheme(theme: EmbedTheme): void {
  chosen = theme;
  const system = matchMedia(DARK);
  const paint = () => {
    const isDark = chosen === 'dark' || (chosen === 'system' && system.matches);
    const { classList } = document.documentElement;
    classList.toggle('dark', isDark);
    classList.toggle('light', !isDark);
  };
  paint();
  if (isFollowing) return;
  isFollowing = true;
  system.addEventListener('change', paint);
}
