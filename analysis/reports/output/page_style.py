"""The style sheet of the report page: screen and paper."""

STYLE = """
:root{--ink:#1c1f23;--soft:#5b6168;--line:#d8dbdf;--faint:#f5f6f7;--link:#0b5a94}
*{box-sizing:border-box}
html{-webkit-text-size-adjust:100%}
body{margin:0 auto;max-width:62rem;padding:2.5rem 2rem 4rem;background:#fff;color:var(--ink);
font:16px/1.55 system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif}
.eyebrow{margin:0;color:var(--soft);font-size:.875rem}
h1{margin:.15rem 0 1.25rem;font-size:1.9rem;line-height:1.2;font-weight:650;letter-spacing:-.01em}
h2{margin:0 0 .5rem;font-size:1.25rem;font-weight:650}
section{margin-top:2.75rem;padding-top:1.5rem;border-top:1px solid var(--line)}
p{margin:.4rem 0;max-width:44rem;overflow-wrap:anywhere}
a{color:var(--link)}
.banner{max-width:none;
margin:0 0 .6rem;padding:.6rem .9rem;border-left:4px solid var(--line);background:var(--faint)}
.observers{border-color:#b35c00;background:#fff6ea;color:#6b3600}
.sealed{border-color:#8c6d00;background:#fffae0;color:#574400}
.open{color:var(--soft)}
.numbers{display:grid;grid-template-columns:repeat(auto-fit,minmax(11rem,1fr));gap:1rem;margin:1.5rem 0}
.numbers div{display:flex;flex-direction:column;padding:.2rem 0 .2rem .9rem;border-left:2px solid var(--line)}
.numbers dd{margin:0;font-size:1.75rem;line-height:1.25;font-weight:600;font-variant-numeric:tabular-nums}
.numbers small{font-size:.95rem;font-weight:400;color:var(--soft)}
.numbers dt{color:var(--soft);font-size:.875rem}
section+nav{margin-top:2.5rem}
nav ol{margin:0;padding:0;list-style:none;font-size:.875rem}
nav>ol>li{display:flex;align-items:baseline;gap:.25rem 1rem;margin:.15rem 0}
nav ol ol{display:flex;flex-wrap:wrap;gap:0 1.1rem}
.mark{display:inline-block;padding:.08rem .5rem;border:1px solid var(--line);border-radius:1rem;
color:var(--soft);font-size:.75rem;font-weight:500;letter-spacing:0;white-space:nowrap;vertical-align:middle}
.mark.planned{border-color:#0b5a94;color:#0b5a94}
h2 .mark{margin-left:.7rem}
nav a{display:inline-block;padding:.25rem 0;text-decoration:none}
nav a:hover{text-decoration:underline}
.table{overflow-x:auto;margin-top:1.25rem}
table{border-collapse:collapse;
width:100%;font-size:.875rem;font-variant-numeric:tabular-nums}
caption{padding-bottom:.4rem;text-align:left;font-weight:600;font-size:.95rem}
th,td{padding:.38rem .55rem;text-align:left;vertical-align:baseline;font-weight:400}
th:first-child{padding-left:.1rem}
thead th{border-top:1.5px solid var(--ink);border-bottom:1px solid var(--ink);font-weight:600;
vertical-align:bottom}
tbody th{white-space:nowrap}
tbody tr+tr>*{border-top:1px solid #eceef0}
tbody tr:last-child>*{border-bottom:1.5px solid var(--ink)}
.n{text-align:right}
td.n{white-space:nowrap}
td:last-child:not(.n){overflow-wrap:anywhere;min-width:9rem}
.many thead .n{writing-mode:sideways-lr;
text-align:left;vertical-align:bottom;line-height:1.25;max-height:11rem}
.many th,.many td{padding-left:.3rem;padding-right:.3rem}
.many tbody th{white-space:normal}
.dot{display:inline-block;width:.62em;height:.62em;margin-right:.5em;border-radius:50%}
.note,figcaption{margin:.45rem 0 0;color:var(--soft);font-size:.8125rem;line-height:1.45;max-width:50rem}
figure{margin:1.75rem 0 0}
.drawing{overflow-x:auto;max-width:50rem}
figure svg{display:block;width:100%;height:auto}
footer{margin-top:3rem;padding-top:1rem;border-top:1px solid var(--line);color:var(--soft);font-size:.8125rem}
footer dl{display:flex;flex-wrap:wrap;gap:.3rem 1.75rem;margin:0}
footer div{display:flex;gap:.45rem}
footer dd{margin:0;color:var(--ink);font-variant-numeric:tabular-nums}
:focus-visible{outline:2px solid var(--link);outline-offset:2px}
@media (max-width:40rem){
body{padding:1.25rem 1rem 3rem}
h1{font-size:1.5rem}
nav>ol>li{flex-direction:column}
figure svg{min-width:32rem}
tbody th:first-child,thead th:first-child{position:sticky;left:0;z-index:1;background:#fff}
tbody th{min-width:7.5rem;max-width:9rem;white-space:normal;
padding-right:.7rem;box-shadow:1px 0 0 var(--line)}
}
@media print{
@page{size:A4;margin:16mm}
body{max-width:none;padding:0;font-size:10.5pt}
nav{display:none}
section{break-inside:auto;margin-top:1.5rem;padding-top:1rem}
figure,.table,.numbers,tr{break-inside:avoid}
thead{display:table-header-group}
caption{break-after:avoid}
figure{margin-top:1rem}
figure svg{max-height:215mm}
table{font-size:8.5pt}
th,td{padding:.2rem .35rem}
td.n{white-space:normal}
h2{break-after:avoid}
.table,.drawing{overflow:visible}
.banner,.dot{print-color-adjust:exact;-webkit-print-color-adjust:exact}
a{color:inherit;text-decoration:none}
}
"""
