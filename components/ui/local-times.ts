import { STORAGE_PREFIX, TIMES_KEY } from './storage-key';

/**
 * A script that fills the times in the server's markup before they are painted: only the browser knows the time zone.
 * Runs for each part of the markup as it arrives, and stops at the end of the page. The formats are those of `TimeOfDay`
 * and `Moment`.
 *
 * @param isPersonal true to apply the user's `TimeSettings`; false in embeds
 */
export const localTimes = (isPersonal: boolean) => `(()=>{
const read=name=>localStorage.getItem('${STORAGE_PREFIX}'+name);
let hours,language='en-GB';
try{if(${isPersonal}){
const set=JSON.parse(read('of:'+encodeURIComponent(read('current')||'')+':${TIMES_KEY}'))||{};
language=set.language===''?undefined:Intl.getCanonicalLocales(set.language||language)[0];hours=set.hours}}catch{}
const hour12=hours==='12'||hours==='browser'&&new Intl.DateTimeFormat(undefined,{hour:'numeric'}).resolvedOptions().hour12;
const now=new Date(),fill=()=>{for(const e of document.querySelectorAll('time[data-local]')){
const at=new Date(e.dateTime),kind=e.dataset.local;delete e.dataset.local;if(isNaN(at))continue;
const second=kind.endsWith('s')?'2-digit':undefined;
let text=hour12?at.toLocaleTimeString(language,{hour:'numeric',minute:'2-digit',second,hour12})
:at.toTimeString().slice(0,second?8:5);
if(kind[0]==='d'&&at.toDateString()!==now.toDateString()){
const year=at.getFullYear()===now.getFullYear()?undefined:'numeric';
text=at.toLocaleDateString(language,{day:'numeric',month:'short',year})+' '+text}
e.textContent=text;
}},seen=new MutationObserver(fill);
seen.observe(document,{childList:true,subtree:true});
addEventListener('DOMContentLoaded',()=>{fill();seen.disconnect()},{once:true});
})()`;
