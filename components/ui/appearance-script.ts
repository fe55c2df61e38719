import { STORAGE_PREFIX } from './storage-key';

/** Shared by all users of the browser, because pages without a user have a theme, too. */
export const THEME_KEY = 'theme';
export const DENSITY_KEY = 'density';
/** Event of the window after the appearance has changed. */
export const CHANGED = 'interludeappearance';

/**
 * Applies the theme, and the density of the browser's user, before the first paint and after each change: by the page,
 * in another tab, or by the system. The page calls `interludeAppearance` after its own changes.
 */
export const APPEARANCE_SCRIPT = `(()=>{
const root=document.documentElement;
const system=matchMedia('(prefers-color-scheme: dark)');
const read=(name)=>{try{return localStorage.getItem(name)}catch{return null}};
const apply=(theme=read('${THEME_KEY}'),density)=>{
const person=encodeURIComponent(read('${STORAGE_PREFIX}current')||'');
const dark=theme==='dark'||(theme!=='light'&&system.matches);
root.classList.toggle('dark',dark);
root.classList.toggle('light',!dark);
root.dataset.density=density||read('${STORAGE_PREFIX}of:'+person+':${DENSITY_KEY}')||'';
dispatchEvent(new Event('${CHANGED}'));
};
const follow=()=>apply();
self.interludeAppearance=apply;
addEventListener('storage',follow);
system.addEventListener('change',follow);
follow();
})()`;
