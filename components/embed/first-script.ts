/** Where the script below leaves what it found, for the one who takes it. */
const LEFT = 'interludeToken';

/**
 * Runs before everything else in the page: a token in the fragment leaves the address before anybody can read it there,
 * and the first paint is in the theme that the address names.
 */
export const FIRST_SCRIPT = `(()=>{
const found=/^#token=(.+)$/.exec(location.hash);
if(found){
history.replaceState(history.state,'',location.pathname+location.search);
Object.defineProperty(window,'${LEFT}',{value:found[1],configurable:true});
}
const theme=new URLSearchParams(location.search).get('theme');
const dark=theme==='dark'||(theme!=='light'&&matchMedia('(prefers-color-scheme: dark)').matches);
document.documentElement.classList.add(dark?'dark':'light');
})()`;

/** The token that came in the fragment, once. Null if none did. */
export function takeFragmentToken(): string | null {
  const found: unknown = Reflect.get(window, LEFT);
  Reflect.deleteProperty(window, LEFT);
  if (typeof found !== 'string') return null;
  try {
    return decodeURIComponent(found);
  } catch {
    return null;
  }
}
