// Wide pictures of the gallery get a box of their own, which scrolls on a phone.
addEventListener("load", () => {
  for (const picture of document.querySelectorAll(".bd-content img.sphx-glr-single-img")) {
    if (picture.naturalWidth < 640) continue;
    const box = document.createElement("div");
    box.className = "wide-picture";
    picture.replaceWith(box);
    box.append(picture);
  }
});
