"""An RTSP server with one stream, /jpeg: moving pictures as RTP JPEG. Prints its port, and runs until it is killed."""

import gi

gi.require_version("Gst", "1.0")
gi.require_version("GstRtspServer", "1.0")
from gi.repository import GLib, Gst, GstRtspServer

Gst.init(None)
server = GstRtspServer.RTSPServer()
server.set_address("127.0.0.1")
server.set_service("0")
factory = GstRtspServer.RTSPMediaFactory()
caps = "video/x-raw,format=I420,width=160,height=120,framerate=30/1"
factory.set_launch(f"( videotestsrc is-live=true pattern=ball ! {caps} ! jpegenc ! rtpjpegpay name=pay0 )")
factory.set_shared(True)
server.get_mount_points().add_factory("/jpeg", factory)
server.attach(None)
print(server.get_bound_port(), flush=True)
GLib.MainLoop().run()
