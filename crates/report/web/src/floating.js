// The box with exact values that floats beside the pointer or the focus.

const tip = document.createElement('div');
tip.className = 'tip floating';
tip.setAttribute('role', 'status');
tip.hidden = true;

export function showTip(html, x, y) {
  if (!tip.isConnected) document.body.append(tip);
  tip.innerHTML = html;
  tip.hidden = false;
  const [width, height] = [tip.offsetWidth, tip.offsetHeight];
  tip.style.left = `${Math.max(4, Math.min(x + 14, innerWidth - width - 8))}px`;
  tip.style.top = `${Math.max(4, y + 18 + height > innerHeight ? y - height - 12 : y + 18)}px`;
}

export function hideTip() {
  tip.hidden = true;
}

document.addEventListener('keydown', (event) => {
  if (event.key === 'Escape') hideTip();
});
document.addEventListener('scroll', hideTip, { passive: true });
