interface SettingsPage {
  href: string;
  name: string;
  isForAdmins?: true;
  /** True for pages about this browser and its user, which come first. */
  isPersonal?: true;
}

/** The settings pages, in the order of the list. */
export const SETTINGS_PAGES: readonly SettingsPage[] = [
  { href: '/settings', name: 'You', isPersonal: true },
  { href: '/settings/appearance', name: 'Appearance', isPersonal: true },
  { href: '/settings/notifications', name: 'Notifications', isPersonal: true },
  { href: '/settings/shortcuts', name: 'Shortcuts', isPersonal: true },
  { href: '/settings/access', name: 'Access', isForAdmins: true },
  { href: '/settings/members', name: 'Members', isForAdmins: true },
  { href: '/settings/storage', name: 'Storage', isForAdmins: true },
  { href: '/settings/audit', name: 'Audit', isForAdmins: true },
  { href: '/settings/api', name: 'API' },
  { href: '/settings/webhook', name: 'Webhook' },
];

/** Class of links to the shortcuts, which touch screens don't mention. The search still finds them. */
export const NO_KEYBOARD = 'pointer-coarse:hidden';

export function pagesFor(isAdmin: boolean): SettingsPage[] {
  return SETTINGS_PAGES.filter(({ isForAdmins }) => isAdmin || !isForAdmins);
}

/** A setting that the search can find. */
interface IndexedSetting {
  label: string;
  /** Further words that people search for. */
  words: string;
  /** Address of its page, with the setting's id as the fragment. */
  href: string;
}

/** Ids of elements on the settings pages. A test opens each one. */
export const SETTINGS: readonly IndexedSetting[] = [
  { label: 'Sign out', words: 'log out logout leave end', href: '/settings#sign-out' },
  { label: 'Role', words: 'permissions rights account name', href: '/settings#sign-out' },
  { label: 'Sign out everywhere else', words: 'other browsers devices sessions', href: '/settings#elsewhere' },
  { label: 'Theme', words: 'dark light night mode colour color system', href: '/settings/appearance#theme' },
  { label: 'Density', words: 'compact comfortable rows size spacing font', href: '/settings/appearance#density' },
  { label: 'Time format', words: '12 24 hour clock am pm', href: '/settings/appearance#hours' },
  { label: 'Language of dates', words: 'locale region format day month', href: '/settings/appearance#language' },
  { label: 'Times in lists', words: 'relative absolute ago age timestamp', href: '/settings/appearance#ages' },
  {
    label: 'Desktop notifications',
    words: 'alerts push browser sound turn on',
    href: '/settings/notifications#desktop',
  },
  { label: 'Notify about', words: 'kinds permissions questions failures', href: '/settings/notifications#kinds' },
  { label: 'Quiet hours', words: 'do not disturb night mute', href: '/settings/notifications#quiet' },
  {
    label: 'Single-key shortcuts',
    words: 'letters turn off keyboard accessibility',
    href: '/settings/shortcuts#letters',
  },
  { label: 'Keyboard shortcuts', words: 'keys rebind hotkeys bindings reset', href: '/settings/shortcuts#keys' },
  { label: 'Tokens', words: 'create revoke api key secret runner', href: '/settings/access#tokens' },
  { label: 'Sign-ins', words: 'people browsers sessions end', href: '/settings/access#sign-ins' },
  { label: 'Embeds', words: 'iframe frames other sites', href: '/settings/access#embeds' },
  { label: 'Members', words: 'people users roles block team groups', href: '/settings/members#members' },
  { label: 'Database', words: 'size disk space', href: '/settings/storage#database' },
  { label: 'Retention', words: 'delete remove old days keep', href: '/settings/storage#retention' },
  { label: 'Maintenance', words: 'backup check vacuum copy', href: '/settings/storage#maintenance' },
  { label: 'Audit', words: 'history who export verify hash', href: '/settings/audit' },
  { label: 'API reference', words: 'openapi operations http rest', href: '/settings/api' },
  { label: 'Webhook', words: 'slack deliveries test post', href: '/settings/webhook#webhook' },
];

interface Found extends IndexedSetting {
  page: string;
}

/** Settings with all of the words, best first: those whose label starts with the text. */
export function searchSettings(text: string, isAdmin: boolean): Found[] {
  const wanted = text.toLowerCase().split(/\s+/).filter(Boolean);
  if (wanted.length === 0) return [];
  const pages = pagesFor(isAdmin);
  const found = SETTINGS.flatMap((setting) => {
    const page = pages.find(({ href }) => href === setting.href.split('#')[0]);
    const all = `${setting.label} ${setting.words} ${page?.name}`.toLowerCase();
    return page !== undefined && wanted.every((word) => all.includes(word)) ? { ...setting, page: page.name } : [];
  });
  const isLabel = ({ label }: Found) => label.toLowerCase().startsWith(wanted.join(' '));
  return found.toSorted((a, b) => Number(isLabel(b)) - Number(isLabel(a)));
}
